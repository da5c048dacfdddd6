/** The text, cut to at most `max` characters; a cut text ends with an ellipsis, and splits no surrogate pair. */
export function shorten(text: string, max: number): string {
  if (text.length <= max) return text;
  return `${text.slice(0, max - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/**
 * The text of an admission warning, cut to at most `max` characters. Cuts in the middle, because a warning ends with what to do. Clients get
 * warnings in an HTTP header, which some read as Latin-1, so ` ... ` in ASCII marks the cut. Splits no word of up to 20 characters, and no
 * surrogate pair.
 */
export function cutInTheMiddle(text: string, max: number): string {
  if (text.length <= max) return text;
  const head = Math.floor(max / 3);
  const [first, last] = [text.slice(0, head), text.slice(text.length - (max - head - 5))];
  // A part that ends or begins between two words may lose one more word.
  const start = first.replace(/[\uD800-\uDBFF]$/, '').replace(/ \S{0,20}$/, '');
  return `${start} ... ${last.replace(/^[\uDC00-\uDFFF]/, '').replace(/^\S{0,20} /, '')}`;
}
