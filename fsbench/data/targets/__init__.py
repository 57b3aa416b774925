"""Target data sets, one file each; the file name is the public name.

A file defines

    FACTS       DatasetFacts: classes, official counts, layout, licence, citation; here all that
                is stated and not computed comes from a card, fsbench/data/cards/NAME.yaml
    load        (folder, pool, splits) -> TargetDataset: the images below `folder`
    arrange     optional, (folder): moves unpacked files to where `load` expects them

All files share these names because the registry reads them.
"""
