"""How a derivative is declared and found: rules and their kinds, and what a rule is handed and hands back."""
