// Returns what is wrong with the looks of a page, as a list of sentences.
(() => {
  const complaints = new Set();
  const name = (e) => e.localName + (e.id && `#${e.id}`) + [...e.classList].map((c) => `.${c}`).join('') + ` “${e.textContent.trim().slice(0, 30)}”`;
  for (const step of document.querySelectorAll('.step, .sample article')) step.style.contentVisibility = 'visible';
  const excess = document.documentElement.scrollWidth - innerWidth;
  if (excess > 0) complaints.add(`the page is ${excess} px wider than the window`);

  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (color) => {
    const [r, g, b] = rgba(color).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const background = (e) => {
    for (; e; e = e.parentElement) {
      if (e instanceof SVGElement && e.ownerSVGElement) return getComputedStyle(e.ownerSVGElement.querySelector('rect')).fill;
      const color = getComputedStyle(e).backgroundColor;
      if (rgba(color)[3] === 255) return color;
    }
    return 'white';
  };
  const readable = (e, color, what) => {
    const ratio = contrast(color, background(e));
    if (ratio < 4.5) complaints.add(`${what} ${name(e)} has a contrast of ${ratio.toFixed(1)}`);
  };

  // The visible part of a rectangle: elements that scroll or hide what exceeds them cut it.
  const visible = (rect, e) => {
    let { left, right, top, bottom } = rect;
    for (; e && e !== document.body; e = e.parentElement) {
      if (getComputedStyle(e).overflow === 'visible') continue;
      const box = e.getBoundingClientRect();
      [left, right, top, bottom] = [Math.max(left, box.left), Math.min(right, box.right), Math.max(top, box.top), Math.min(bottom, box.bottom)];
    }
    return { left, right, top, bottom };
  };
  const lines = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (n) => (n.data.trim() ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP));
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const e = node.parentElement;
    const style = getComputedStyle(e);
    if (!e.checkVisibility() || e.closest('.skip, dialog')) continue;
    readable(e, e instanceof SVGElement ? style.fill : style.color, 'text');
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const line = visible(rect, e);
      if (line.right - line.left > 2 && line.bottom - line.top > 4) lines.push({ ...line, e });
    }
    const shortened = style.textOverflow === 'ellipsis' || style.webkitLineClamp !== 'none';
    if (style.overflow === 'hidden' && !shortened && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)) complaints.add(`${name(e)} is cut off`);
  }
  for (const input of document.querySelectorAll('[placeholder]')) readable(input, getComputedStyle(input, '::placeholder').color, 'placeholder of');
  lines.sort((a, b) => a.top - b.top);
  for (const [i, a] of lines.entries()) {
    for (let j = i + 1; j < lines.length && lines[j].top < a.bottom - 4; j++) {
      const b = lines[j];
      if (a.e !== b.e && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2) complaints.add(`${name(a.e)} and ${name(b.e)} overlap`);
    }
  }

  for (const e of document.querySelectorAll('a[href], button, input, summary')) {
    e.focus({ preventScroll: true });
    if (document.activeElement !== e) continue;
    const style = getComputedStyle(e);
    if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) complaints.add(`the focus on ${name(e)} is invisible`);
    else if (contrast(style.outlineColor, background(e.parentElement)) < 3) complaints.add(`the focus on ${name(e)} is hard to see`);
  }
  document.activeElement.blur();
  scrollTo(0, 0);
  return [...complaints];
})();
