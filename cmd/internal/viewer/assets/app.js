// Keys, toggles whose state is part of the address, and live updates. Every page works without it.

const all = (selector) => [...document.querySelectorAll(selector)];
const shown = (element) => element.checkVisibility();
const toggles = () => all('.toggles input');

// The hash of the address belongs to the anchors, so the state of the toggles is in the query.
function restoreToggles() {
  const hidden = (new URLSearchParams(location.search).get('hide') ?? '').split(',');
  for (const box of toggles()) box.checked = !hidden.includes(box.id.replace('show-', ''));
}

function storeToggles() {
  const hidden = toggles().filter((box) => !box.checked).map((box) => box.id.replace('show-', ''));
  const query = new URLSearchParams(location.search);
  hidden.length ? query.set('hide', hidden.join(',')) : query.delete('hide');
  const text = query.size ? `?${query.toString().replaceAll('%2C', ',')}` : '';
  try {
    history.replaceState(null, '', location.pathname + text + location.hash);
  } catch { /* a file of another origin keeps its address */ }
}

const items = () => all('.step, .result, .episodes tbody tr:not(.hits), .tasks tbody tr').filter(shown);

function current(list) {
  const chosen = list.findIndex((item) => item.classList.contains('chosen'));
  if (chosen >= 0) return chosen;
  return list.findIndex((item) => item.id && `#${item.id}` === location.hash);
}

function choose(item) {
  if (!item) return;
  all('.chosen').forEach((old) => old.classList.remove('chosen'));
  item.classList.add('chosen');
  if (item.matches('tr')) item.scrollIntoView({ block: 'nearest' });
  else settle(item);
  (item.querySelector('a[href^="/t/"]') ?? item).focus({ preventScroll: true });
  if (item.id) {
    try {
      history.replaceState(null, '', location.pathname + location.search + `#${item.id}`);
    } catch { /* as above */ }
  }
}

function move(by, accept = () => true) {
  const list = items();
  for (let i = current(list) + by; i >= 0 && i < list.length; i += by) {
    if (accept(list[i])) return choose(list[i]);
  }
  if (current(list) < 0 && by < 0) choose(list.findLast(accept));
}

// Steps that the browser has not laid out yet have a guessed height, so a jump can miss its target
// while it lays them out. Repeat the jump for some frames.
function settle(target, frames = 20) {
  if (!target || frames === 0) return;
  target.scrollIntoView({ block: 'start' });
  requestAnimationFrame(() => settle(target, frames - 1));
}

const settleHash = () => settle(location.hash && document.getElementById(location.hash.slice(1)));

function follow(selector) {
  document.querySelector(selector)?.click();
}

// Marks the episode as its button does, and goes on to the next one of the list.
async function mark(value) {
  const form = document.querySelector('form.mark[method="post"]');
  if (!form) return;
  const body = new URLSearchParams({ mark: value, note: form.elements.note.value });
  const answer = await fetch(form.action, { method: 'POST', body, redirect: 'manual' });
  if (answer.type !== 'opaqueredirect') form.querySelector(`[value="${value}"]`).click(); // shows why
  else follow(document.querySelector('a[rel="next"]') ? 'a[rel="next"]' : 'a[data-key="u"]');
}

const failed = (item) => item.classList.contains('failed');
const keys = {
  j: () => move(1),
  k: () => move(-1),
  n: () => move(1, failed),
  p: () => move(-1, failed),
  '[': () => follow('a[rel="prev"]'),
  ']': () => follow('a[rel="next"]'),
  y: () => mark('keep'),
  x: () => mark('reject'),
  m: () => document.querySelector('input[name="note"]')?.focus(),
  u: () => follow('a[data-key="u"]'),
  g: () => choose(items()[0]),
  G: () => choose(items().at(-1)),
  '/': () => document.querySelector('input[type="search"]')?.focus(),
  '?': () => document.getElementById('help').showModal(),
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select, dialog')) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  const box = toggles()[Number(event.key) - 1];
  if (box) box.click();
  else if (keys[event.key]) keys[event.key]();
  else return;
  event.preventDefault();
});

document.addEventListener('change', (event) => {
  if (event.target.closest('.toggles')) storeToggles();
});
document.addEventListener('click', (event) => {
  if (event.target.id === 'keys') keys['?']();
});

// Replaces parts of this page by those of another address.
async function replace(address, parts) {
  const next = new DOMParser().parseFromString(await (await fetch(address)).text(), 'text/html');
  for (const part of parts) document.querySelector(part)?.replaceWith(document.adoptNode(next.querySelector(part)));
}

// Replaces the list when the server has new episodes, and the running jobs always. Pages of one
// episode never change.
async function update() {
  try {
    const version = (await (await fetch('/version')).json()).version;
    if (version === document.body.dataset.version || document.activeElement?.matches('input, select')) {
      if (document.querySelector('.jobs section')) await replace('/jobs', ['.jobs']);
      return;
    }
    const chosen = document.querySelector('.chosen a')?.getAttribute('href');
    await replace(location.href, ['.top', '.jobs', '.columns']);
    document.body.dataset.version = version;
    foldFacets();
    all('.episodes tbody tr').find((row) => chosen && row.querySelector('a')?.getAttribute('href') === chosen)?.classList.add('chosen');
  } catch { /* the server has stopped, or will answer the next time */ }
}

// On a narrow screen, the values by which the list can be narrowed come before it.
function foldFacets() {
  if (!matchMedia('(max-width: 70rem)').matches) return;
  for (const facet of all('aside details')) facet.open = facet.querySelector('.on') !== null;
}

restoreToggles();
foldFacets();
settleHash();
addEventListener('hashchange', settleHash);
if (document.body.matches('.list, .compare, .running') && location.protocol !== 'file:') setInterval(update, 2000);
