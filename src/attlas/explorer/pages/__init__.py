"""The pages of the explorer, one file per door: each holds a `Page` called ``PAGE``."""
