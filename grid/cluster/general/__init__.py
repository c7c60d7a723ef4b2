"""Any number of machines under any policy: one plan an instant, asked of the policy itself."""
