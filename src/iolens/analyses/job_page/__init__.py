"""One job on a page for the person who ran it: what it moved, what it cost, who else was there, what to change."""
