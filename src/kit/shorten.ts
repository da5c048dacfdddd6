/** With an ellipsis at the end, and no split surrogate pair. */
export function shorten(text: string, max: number): string {
  if (text.length <= max) return text;
  return `${text.slice(0, max - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/**
 * An admission warning ends with what to do, so the cut is in the middle. It is ASCII, because
 * clients read the HTTP header as Latin-1. Splits no word of up to 20 characters.
 */
export function cutInTheMiddle(text: string, max: number): string {
  if (text.length <= max) return text;
  const head = Math.floor(max / 3);
  const [first, last] = [text.slice(0, head), text.slice(text.length - (max - head - 5))];
  const start = first.replace(/[\uD800-\uDBFF]$/, '').replace(/ \S{0,20}$/, '');
  return `${start} ... ${last.replace(/^[\uDC00-\uDFFF]/, '').replace(/^\S{0,20} /, '')}`;
}
