"""What everything else is made of: errors, time, schemas, values, accounts."""
