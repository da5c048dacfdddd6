/**
 * The command lines of the client that a page shows in fences, without the program: lines such as `drawbridge list # comment`, and those
 * after the prompt of a person, such as `$ drawbridge list` or `alice$ drawbridge list`. Usage lines, with words such as `[flags]`, are none.
 */
export function commandLinesIn(page: string): string[][] {
  const fences = [...page.matchAll(/^ *```\w*\n([\s\S]*?)^ *```$/gm)].map(([, text = '']) => text);
  return fences
    .flatMap((text) => text.replaceAll('\\\n', ' ').split('\n'))
    .flatMap((line) => /^ *(?:\w*\$ )?(?:kubectl )?drawbridge (.*)$/.exec(line)?.slice(1) ?? [])
    .filter((line) => !/\[|\bCOMMAND\b/.test(line))
    .map((line) => [...line.matchAll(/'([^']*)'|#.*|\S+/g)].flatMap(([word, quoted]) => wordOf(word, quoted)));
}

/** Comments are no words. */
const wordOf = (word: string, quoted: string | undefined): string[] =>
  quoted !== undefined ? [quoted] : word.startsWith('#') ? [] : [word];
