"""Studies: experiments on ranks and judgements that papers report."""
