"""Figures as programs: each states a claim, measures it, and says whether it holds here."""
