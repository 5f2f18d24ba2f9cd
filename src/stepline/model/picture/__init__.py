"""The waist: one picture of one run, which rules, predictions and reports read."""
