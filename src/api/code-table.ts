/** What a code means. docs/reference/codes.md is generated from these texts. */
export interface CodeText {
  /** Who can act on it. */
  readonly audience: 'requester' | 'author' | 'operator' | 'component' | 'fleet administrator' | 'anyone';
  /** What was found; a sentence. */
  readonly meaning: string;
  /** What to do; a sentence. */
  readonly remedy: string;
}

export type CodeTable = Readonly<Record<string, CodeText>>;
