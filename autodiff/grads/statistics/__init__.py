"""Rules of statistics: spreads, order statistics, what passes over what is not a number, histograms."""
