package dataset

var DefaultNAValues = defaultNAValues
