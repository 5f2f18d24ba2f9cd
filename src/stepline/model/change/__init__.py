"""What a change would bring, as an interval, and what a change brought, from two pictures."""
