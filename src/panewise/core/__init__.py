"""The basis of all other packages: errors, time, schemas, values, accounts."""
