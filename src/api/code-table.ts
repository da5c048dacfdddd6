/** docs/reference/codes.md is generated from them. */
export interface CodeText {
  /** Who can apply the remedy. */
  readonly audience: 'requester' | 'voter' | 'author' | 'operator' | 'component' | 'fleet administrator' | 'anyone';
  /** What was found; a sentence. */
  readonly meaning: string;
  /** What to do; a sentence. */
  readonly remedy: string;
}

export type CodeTable = Readonly<Record<string, CodeText>>;
