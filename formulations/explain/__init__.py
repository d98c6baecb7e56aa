"""What every plan of an instance needs at rest, and which rules clash where no plan can exist."""
