"""Figures of the papers, a folder each: a paper's claim beside what is measured here."""
