"""One file per hardware unit, named like the operator it realises."""
