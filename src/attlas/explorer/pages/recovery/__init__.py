"""The page of recovery: a body is sculpted around two heads, and a black box is asked until it has told everything."""

from attlas.explorer.page import Page
from attlas.explorer.pages.recovery import black_box, body

PAGE = Page("recovery", (body.SECTION, black_box.SECTION))
