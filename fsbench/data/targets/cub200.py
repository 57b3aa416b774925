"""CUB-200-2011: 200 bird species, with the official train and test split.

The Caltech-UCSD Birds-200-2011 Dataset. C. Wah et al., technical report CNS-TR-2011-001, 2011.
Publisher: https://www.vision.caltech.edu/datasets/cub_200_2011/
Licence: research use by its authors; some copies say CC0.
Layout: CUB_200_2011/ with images/<class>/*.jpg, images.txt, image_class_labels.txt and
train_test_split.txt.

Image numbers and labels count from 1; train_test_split.txt says 1 for train.
"""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import Archive
from fsbench.data.splits import ListedImage, assemble_official, find_inner_folder, read_lines

BASE = "CUB_200_2011"
TABLES = ("images.txt", "image_class_labels.txt", "train_test_split.txt")
"""One line per image: its number, then its path, its label, or 1 for train."""

BIRDS = """
Black_footed_Albatross Laysan_Albatross Sooty_Albatross Groove_billed_Ani Crested_Auklet
Least_Auklet Parakeet_Auklet Rhinoceros_Auklet Brewer_Blackbird Red_winged_Blackbird Rusty_Blackbird
Yellow_headed_Blackbird Bobolink Indigo_Bunting Lazuli_Bunting Painted_Bunting Cardinal
Spotted_Catbird Gray_Catbird Yellow_breasted_Chat Eastern_Towhee Chuck_will_Widow Brandt_Cormorant
Red_faced_Cormorant Pelagic_Cormorant Bronzed_Cowbird Shiny_Cowbird Brown_Creeper American_Crow
Fish_Crow Black_billed_Cuckoo Mangrove_Cuckoo Yellow_billed_Cuckoo Gray_crowned_Rosy_Finch
Purple_Finch Northern_Flicker Acadian_Flycatcher Great_Crested_Flycatcher Least_Flycatcher
Olive_sided_Flycatcher Scissor_tailed_Flycatcher Vermilion_Flycatcher Yellow_bellied_Flycatcher
Frigatebird Northern_Fulmar Gadwall American_Goldfinch European_Goldfinch Boat_tailed_Grackle
Eared_Grebe Horned_Grebe Pied_billed_Grebe Western_Grebe Blue_Grosbeak Evening_Grosbeak
Pine_Grosbeak Rose_breasted_Grosbeak Pigeon_Guillemot California_Gull Glaucous_winged_Gull
Heermann_Gull Herring_Gull Ivory_Gull Ring_billed_Gull Slaty_backed_Gull Western_Gull
Anna_Hummingbird Ruby_throated_Hummingbird Rufous_Hummingbird Green_Violetear Long_tailed_Jaeger
Pomarine_Jaeger Blue_Jay Florida_Jay Green_Jay Dark_eyed_Junco Tropical_Kingbird Gray_Kingbird
Belted_Kingfisher Green_Kingfisher Pied_Kingfisher Ringed_Kingfisher White_breasted_Kingfisher
Red_legged_Kittiwake Horned_Lark Pacific_Loon Mallard Western_Meadowlark Hooded_Merganser
Red_breasted_Merganser Mockingbird Nighthawk Clark_Nutcracker White_breasted_Nuthatch
Baltimore_Oriole Hooded_Oriole Orchard_Oriole Scott_Oriole Ovenbird Brown_Pelican White_Pelican
Western_Wood_Pewee Sayornis American_Pipit Whip_poor_Will Horned_Puffin Common_Raven
White_necked_Raven American_Redstart Geococcyx Loggerhead_Shrike Great_Grey_Shrike Baird_Sparrow
Black_throated_Sparrow Brewer_Sparrow Chipping_Sparrow Clay_colored_Sparrow House_Sparrow
Field_Sparrow Fox_Sparrow Grasshopper_Sparrow Harris_Sparrow Henslow_Sparrow Le_Conte_Sparrow
Lincoln_Sparrow Nelson_Sharp_tailed_Sparrow Savannah_Sparrow Seaside_Sparrow Song_Sparrow
Tree_Sparrow Vesper_Sparrow White_crowned_Sparrow White_throated_Sparrow Cape_Glossy_Starling
Bank_Swallow Barn_Swallow Cliff_Swallow Tree_Swallow Scarlet_Tanager Summer_Tanager Artic_Tern
Black_Tern Caspian_Tern Common_Tern Elegant_Tern Forsters_Tern Least_Tern Green_tailed_Towhee
Brown_Thrasher Sage_Thrasher Black_capped_Vireo Blue_headed_Vireo Philadelphia_Vireo Red_eyed_Vireo
Warbling_Vireo White_eyed_Vireo Yellow_throated_Vireo Bay_breasted_Warbler Black_and_white_Warbler
Black_throated_Blue_Warbler Blue_winged_Warbler Canada_Warbler Cape_May_Warbler Cerulean_Warbler
Chestnut_sided_Warbler Golden_winged_Warbler Hooded_Warbler Kentucky_Warbler Magnolia_Warbler
Mourning_Warbler Myrtle_Warbler Nashville_Warbler Orange_crowned_Warbler Palm_Warbler Pine_Warbler
Prairie_Warbler Prothonotary_Warbler Swainson_Warbler Tennessee_Warbler Wilson_Warbler
Worm_eating_Warbler Yellow_Warbler Northern_Waterthrush Louisiana_Waterthrush Bohemian_Waxwing
Cedar_Waxwing American_Three_toed_Woodpecker Pileated_Woodpecker Red_bellied_Woodpecker
Red_cockaded_Woodpecker Red_headed_Woodpecker Downy_Woodpecker Bewick_Wren Cactus_Wren Carolina_Wren
House_Wren Marsh_Wren Rock_Wren Winter_Wren Common_Yellowthroat
"""
CLASSES = tuple(f"{number:03d}.{bird}" for number, bird in enumerate(BIRDS.split(), 1))

FACTS = DatasetFacts(
    name="cub200",
    title="CUB-200-2011",
    domain="target",
    classes=CLASSES,
    images_per_class=(),
    split=(5994, 5794),
    label_rule="class id = label of image_class_labels.txt minus 1",
    layout=f"{BASE}/images/<class>/*.jpg with {', '.join(TABLES)} beside images/",
    folders=(BASE, "cub200", "CUB", "cub-200-2011"),
    aliases=("cub", "cub-200-2011", BASE),
    download="fsbench data download cub200 --data ROOT",
    license="research use by its authors; some copies say CC0",
    citation="Wah et al., The Caltech-UCSD Birds-200-2011 Dataset, CNS-TR-2011-001",
    homepage="https://www.vision.caltech.edu/datasets/cub_200_2011/",
)
ARCHIVES = (
    Archive(
        "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
        "md5:97eceeb196236b17998738112f37df78",
    ),
)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load the train and test images below `folder`.

    Raises DataError for missing files and for files that are not the official ones.
    """
    base = find_inner_folder(folder, BASE, "images", FACTS)
    paths, labels, trained = (_table(base / name) for name in TABLES)
    if not paths.keys() == labels.keys() == trained.keys():
        raise DataError(
            f"{', '.join(TABLES)} in {base} name different images", fix="fetch them again"
        )
    if other := set(trained.values()) - {"0", "1"}:
        raise DataError(
            f"{base / TABLES[2]} says {min(other)[:50]}, neither 0 nor 1", fix="fetch it again"
        )
    listed = {
        number: ListedImage(_label(base, path, labels[number]), path)
        for number, path in paths.items()
    }
    parts = [[listed[n] for n, value in trained.items() if value == flag] for flag in ("1", "0")]
    return assemble_official(FACTS, folder, base / "images", parts, pool)


def _table(path: Path) -> dict[str, str]:
    """Return the second column of a table by image number."""
    rows = [line.split(maxsplit=1) for line in read_lines(path)]
    if any(len(row) != 2 for row in rows):
        raise DataError(f"{path} has a line without two fields", fix="fetch it again")
    if len({row[0] for row in rows}) != len(rows):
        raise DataError(f"{path} lists an image number more than once", fix="fetch it again")
    return {row[0]: row[1] for row in rows}


def _label(base: Path, path: str, number: str) -> int:
    """Return the class id of an image; its folder name must agree."""
    name = path.partition("/")[0]
    if name not in CLASSES or str(CLASSES.index(name) + 1) != number:
        raise DataError(
            f"{base / TABLES[1]}: the label of {path} is not that of its folder",
            fix="fetch it again",
        )
    return CLASSES.index(name)
