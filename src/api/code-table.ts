/** The texts of a code. docs/reference/codes.md is generated from them. */
export interface CodeText {
  /** The person or program that can apply the remedy. */
  readonly audience: 'requester' | 'voter' | 'author' | 'operator' | 'component' | 'fleet administrator' | 'anyone';
  /** What was found; a sentence. */
  readonly meaning: string;
  /** What to do; a sentence. */
  readonly remedy: string;
}

/** Texts by code. */
export type CodeTable = Readonly<Record<string, CodeText>>;
