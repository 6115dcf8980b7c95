package adminpage_test

// readable fails if a text of the page has too little contrast (WCAG 2, 4.5 to 1), or
// the page is wider than the window.
func (b *browser) readable() {
	b.t.Helper()
	for _, found := range value[[]string](b, faint) {
		b.t.Errorf("contrast: %s", found)
	}
	if wide := value[int](b, "document.documentElement.scrollWidth - window.innerWidth"); wide > 0 {
		b.t.Errorf("the page is %d pixels wider than the window", wide)
	}
	for _, found := range value[[]string](b, outside) {
		b.t.Errorf("reaches out of its section: %s", found)
	}
	for _, found := range value[[]string](b, nameless) {
		b.t.Errorf("has no name: %s", found)
	}
}

const faint = `(() => {
  const rgb = s => s.match(/[\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b };
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3) } return [255, 255, 255] };
  const found = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !e.getClientRects().length || e.closest('script, .unseen')) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color).slice(0, 3)), light(behind(e))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) found.add(e.tagName + '.' + e.className + ': ' + ((a + .05) / (b + .05)).toFixed(2));
  }
  return [...found];
})()`

// nameless finds what a screen reader would have no name for.
const nameless = `[
  ...[...document.querySelectorAll('table')].filter(t => !t.caption?.textContent.trim()),
  ...[...document.querySelectorAll('thead th')].filter(h => h.scope !== 'col'),
  ...[...document.querySelectorAll('tbody th')].filter(h => h.scope !== 'row'),
  ...[...document.querySelectorAll('section')].filter(s => !document.getElementById(s.getAttribute('aria-labelledby'))?.textContent.trim()),
  ...[...document.querySelectorAll('svg:not([aria-hidden])')].filter(s => !s.getAttribute('aria-label')),
  ...[...document.querySelectorAll('select')].filter(s => !s.labels.length),
  ...[...document.querySelectorAll('.state')].filter(s => !s.textContent.trim()),
].map(e => e.outerHTML.slice(0, 80))`

// outside finds what is drawn beyond the edge of its section, what scrolls by itself
// aside.
const outside = `[...document.querySelectorAll('section *')].filter(e => !e.closest('.scroll') &&
  e.getBoundingClientRect().right > e.closest('section').getBoundingClientRect().right + 1).map(e => e.outerHTML.slice(0, 80))`
