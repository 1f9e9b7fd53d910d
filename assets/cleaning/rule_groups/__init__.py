"""The groups of rules, one module each; `assets.cleaning.rule_groups.order` lists them."""
