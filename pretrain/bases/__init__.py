"""Base classes of methods and what several share: masks, penalties, reparametrizations."""
