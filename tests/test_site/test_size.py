"""What a large board weighs: the page of 200 entries of 16 columns stays below a megabyte."""

from support import site as fakes_site

from leaderboard.site import data, page

MEGABYTE = 1_000_000


def test_200_entries_of_16_columns_fit_a_megabyte() -> None:
    board = fakes_site.source(
        [f"entry-{i:03}" for i in range(200)],
        targets=("chestx", "cropdisease", "eurosat", "isic"),
        shots=(1, 5, 20, 50),
        n_episodes=600,
    )
    made = data.build_page_data(*board)
    (track,) = made["tracks"]
    assert len(track["entries"]) == track["paired"] == 200
    assert len(track["columns"]) == 16
    sizes = {key: len(str(value)) for key, value in track.items()}
    assert len(page.render_page(made).encode()) < MEGABYTE, sizes
