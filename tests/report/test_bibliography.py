from attlas.report.bibliography import cited, entries, papers


def test_papers_have_the_names_people_use():
    names = papers()
    assert names["chen2024provably"] == "Chen and Li 2024"
    assert names["fu2023random"] == "Fu et al. 2023"
    assert names["raventos2023pretraining"] == "Raventós et al. 2023"
    assert names["odonoghue2015adaptive"] == "O'Donoghue and Candès 2015"
    assert names["bohning1988monotonicity"] == "Böhning and Lindsay 1988"
    assert (names["boncoraglio2025bayes"], names["boncoraglio2025inductive"]) == (
        "Boncoraglio et al. 2025a",
        "Boncoraglio et al. 2025b",
    )
    assert len(set(names.values())) == len(entries())


def test_a_source_names_and_links_its_papers():
    assert cited("chen2024provably, theorem 1; the <rest> is ours") == (
        '<a href="https://arxiv.org/abs/2402.04084">Chen and Li 2024</a>, theorem 1; the &lt;rest&gt; is ours'
    )
    assert cited("hastie2022surprises").startswith('<a href="https://doi.org/10.1214/21-AOS2133">Hastie et al. 2022')
    assert cited("ours, of the model of fu2023random's").startswith("Ours, of the model of <a")
    assert cited("nobody2020nothing") == "Nobody2020nothing"
