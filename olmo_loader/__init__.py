"""placeholder until the public names exist"""
