"""Changes that keep the meaning of evidence keep the answer; changes of meaning change it."""
