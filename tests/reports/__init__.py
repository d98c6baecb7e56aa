"""Reports: numbers, pictures, pages."""
