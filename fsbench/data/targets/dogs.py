"""Stanford Dogs: 120 breeds of ImageNet, with the official train and test lists.

Novel Dataset for Fine-Grained Image Categorization. A. Khosla et al., CVPR workshop on fine-grained
visual categorization, 2011.
Publisher: http://vision.stanford.edu/aditya86/ImageNetDogs/
Licence: a part of ImageNet, non-commercial research and education.
Layout: Images/<wnid>-<breed>/<wnid>_<n>.jpg, train_list.mat and test_list.mat.

Labels of the lists count from 1, in the order of the wnids in the folder names.
"""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import Archive
from fsbench.data.files import find_path
from fsbench.data.splits import UNREADABLE, ListedImage, assemble_official, missing_error

CLASSES = (
    "n02085620-Chihuahua", "n02085782-Japanese_spaniel", "n02085936-Maltese_dog",
    "n02086079-Pekinese", "n02086240-Shih-Tzu", "n02086646-Blenheim_spaniel", "n02086910-papillon",
    "n02087046-toy_terrier", "n02087394-Rhodesian_ridgeback", "n02088094-Afghan_hound",
    "n02088238-basset", "n02088364-beagle", "n02088466-bloodhound", "n02088632-bluetick",
    "n02089078-black-and-tan_coonhound", "n02089867-Walker_hound", "n02089973-English_foxhound",
    "n02090379-redbone", "n02090622-borzoi", "n02090721-Irish_wolfhound",
    "n02091032-Italian_greyhound", "n02091134-whippet", "n02091244-Ibizan_hound",
    "n02091467-Norwegian_elkhound", "n02091635-otterhound", "n02091831-Saluki",
    "n02092002-Scottish_deerhound", "n02092339-Weimaraner", "n02093256-Staffordshire_bullterrier",
    "n02093428-American_Staffordshire_terrier", "n02093647-Bedlington_terrier",
    "n02093754-Border_terrier", "n02093859-Kerry_blue_terrier", "n02093991-Irish_terrier",
    "n02094114-Norfolk_terrier", "n02094258-Norwich_terrier", "n02094433-Yorkshire_terrier",
    "n02095314-wire-haired_fox_terrier", "n02095570-Lakeland_terrier", "n02095889-Sealyham_terrier",
    "n02096051-Airedale", "n02096177-cairn", "n02096294-Australian_terrier",
    "n02096437-Dandie_Dinmont", "n02096585-Boston_bull", "n02097047-miniature_schnauzer",
    "n02097130-giant_schnauzer", "n02097209-standard_schnauzer", "n02097298-Scotch_terrier",
    "n02097474-Tibetan_terrier", "n02097658-silky_terrier", "n02098105-soft-coated_wheaten_terrier",
    "n02098286-West_Highland_white_terrier", "n02098413-Lhasa", "n02099267-flat-coated_retriever",
    "n02099429-curly-coated_retriever", "n02099601-golden_retriever",
    "n02099712-Labrador_retriever", "n02099849-Chesapeake_Bay_retriever",
    "n02100236-German_short-haired_pointer", "n02100583-vizsla", "n02100735-English_setter",
    "n02100877-Irish_setter", "n02101006-Gordon_setter", "n02101388-Brittany_spaniel",
    "n02101556-clumber", "n02102040-English_springer", "n02102177-Welsh_springer_spaniel",
    "n02102318-cocker_spaniel", "n02102480-Sussex_spaniel", "n02102973-Irish_water_spaniel",
    "n02104029-kuvasz", "n02104365-schipperke", "n02105056-groenendael", "n02105162-malinois",
    "n02105251-briard", "n02105412-kelpie", "n02105505-komondor", "n02105641-Old_English_sheepdog",
    "n02105855-Shetland_sheepdog", "n02106030-collie", "n02106166-Border_collie",
    "n02106382-Bouvier_des_Flandres", "n02106550-Rottweiler", "n02106662-German_shepherd",
    "n02107142-Doberman", "n02107312-miniature_pinscher", "n02107574-Greater_Swiss_Mountain_dog",
    "n02107683-Bernese_mountain_dog", "n02107908-Appenzeller", "n02108000-EntleBucher",
    "n02108089-boxer", "n02108422-bull_mastiff", "n02108551-Tibetan_mastiff",
    "n02108915-French_bulldog", "n02109047-Great_Dane", "n02109525-Saint_Bernard",
    "n02109961-Eskimo_dog", "n02110063-malamute", "n02110185-Siberian_husky",
    "n02110627-affenpinscher", "n02110806-basenji", "n02110958-pug", "n02111129-Leonberg",
    "n02111277-Newfoundland", "n02111500-Great_Pyrenees", "n02111889-Samoyed",
    "n02112018-Pomeranian", "n02112137-chow", "n02112350-keeshond", "n02112706-Brabancon_griffon",
    "n02113023-Pembroke", "n02113186-Cardigan", "n02113624-toy_poodle",
    "n02113712-miniature_poodle", "n02113799-standard_poodle", "n02113978-Mexican_hairless",
    "n02115641-dingo", "n02115913-dhole", "n02116738-African_hunting_dog",
)  # fmt: skip
LISTS = ("train_list.mat", "test_list.mat")

FACTS = DatasetFacts(
    name="dogs",
    title="Stanford Dogs",
    domain="target",
    classes=CLASSES,
    images_per_class=(),
    split=(12000, 8580),
    label_rule="class id = label of the lists minus 1 = rank of the folder's wnid",
    layout="Images/<wnid>-<breed>/<wnid>_<n>.jpg, train_list.mat and test_list.mat",
    folders=("dogs", "stanford_dogs", "StanfordDogs", "stanford-dogs"),
    aliases=("stanford-dogs", "stanford_dogs"),
    download="fsbench data download dogs --data ROOT",
    license="a part of ImageNet: non-commercial research and education",
    citation="Khosla et al., Novel Dataset for Fine-Grained Image Categorization, CVPR workshop on "
    "fine-grained visual categorization 2011",
    homepage="http://vision.stanford.edu/aditya86/ImageNetDogs/",
)
ARCHIVES = tuple(
    Archive(
        f"https://vision.stanford.edu/aditya86/ImageNetDogs/{name}.tar",
        f"sha256:{sha256}",
        hash_source="tensorflow/datasets, url_checksums/stanford_dogs.txt",
        mirrors=(f"http://vision.stanford.edu/aditya86/ImageNetDogs/{name}.tar",),
    )
    for name, sha256 in (
        ("images", "a443fc2f9a851aa1a7b8e4fa4af94b8459fce2c9f5a2f4dd4669cf9673a4ec58"),
        ("lists", "34b47cacd9a98b5d150e084f24d29391c084c55272295ec65c85651bc35f4d6c"),
    )
)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load the listed images below `folder`. Raises DataError for missing files, wrong labels."""
    images = find_path(folder, "Images")
    if images is None:
        raise missing_error(folder, "Images/", FACTS)
    parts = [_part(folder, name) for name in LISTS]
    return assemble_official(FACTS, folder, images, parts, pool)


def _part(folder: Path, name: str) -> list[ListedImage]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    table = find_path(folder, name)
    if table is None:
        raise missing_error(folder, name, FACTS)
    try:
        columns = loadmat(table)
        names = [str(cell.item()) for cell in columns["file_list"].ravel()]
        labels = [int(value) - 1 for value in columns["labels"].ravel()]
        pairs = list(zip(labels, names, strict=True))
    except (MatReadError, *UNREADABLE) as error:
        raise DataError(f"cannot read {table}: {error}", fix=FACTS.download) from error
    order = {entry.partition("-")[0]: rank for rank, entry in enumerate(CLASSES)}
    wrong = [n for y, n in pairs if order.get(n.partition("-")[0]) != y]
    if wrong:
        raise DataError(
            f"{table}: the label of {wrong[0]} is not that of its folder", fix="fetch it again"
        )
    return [ListedImage(label, entry) for label, entry in pairs]
