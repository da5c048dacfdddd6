/**
 * Where in a POSIX shell command a value is about to be inserted. Only as much of the shell's grammar as decides whether
 * single quotes around the value would protect it; whatever is unclear counts as not protectable.
 */
export interface QuoteContext {
  readonly quote: 'none' | 'single' | 'double';
  /** The last character was an unquoted backslash or `$`, which changes the meaning of what follows. */
  readonly armed: 'backslash' | 'dollar' | undefined;
  /** A substitution or an ANSI-C string came before: quotes nest in there, and counting them is guessing. */
  readonly unclear: boolean;
}

export const startOfCommand: QuoteContext = { quote: 'none', armed: undefined, unclear: false };

/** The context behind `text`. */
export function scanShell(context: QuoteContext, text: string): QuoteContext {
  let { quote, armed, unclear } = context;
  for (const character of text) {
    if (quote === 'single') {
      if (character === "'") quote = 'none';
      continue;
    }
    const before = armed;
    armed = undefined;
    if (before === 'backslash') continue;
    if (character === '`' || (before === 'dollar' && '({\'"'.includes(character))) unclear = true;
    if (character === '\\') armed = 'backslash';
    else if (character === '$') armed = 'dollar';
    else if (character === '"') quote = quote === 'double' ? 'none' : 'double';
    else if (character === "'" && quote === 'none') quote = 'single';
  }
  return { quote, armed, unclear };
}

/** Characters that no shell treats specially, in or out of quotes. */
const PLAIN = /^[A-Za-z0-9_@%+=:./-]+$/;

/** The value as one shell word (part), or undefined when quoting cannot make it safe in this context. */
export function quoteForShell(value: string, context: QuoteContext): string | undefined {
  if (context.armed) return undefined;
  if (PLAIN.test(value)) return value;
  if (context.quote !== 'none' || context.unclear) return undefined;
  return `'${value.replaceAll("'", "'\\''")}'`;
}
