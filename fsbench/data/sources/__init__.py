"""Source (pretraining) data sets, one file each; the file name is the public name.

A file defines

    FACTS     DatasetFacts: classes, official counts, layout, licence, citation, archives; from a
              card (fsbench/data/cards/NAME.yaml) for the sets of the suite
    load      (folder, cache) -> SourceListing: the training and validation images below `folder`
    arrange   optional, (folder): moves unpacked files to where `load` expects them

All files share these names because the registry reads them.
"""
