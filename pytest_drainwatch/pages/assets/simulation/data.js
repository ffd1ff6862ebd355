/*
 * The page's data, as render/simulation_page.py wrote it.
 */
dw.simulation = { page: JSON.parse(document.getElementById("data").textContent) };
