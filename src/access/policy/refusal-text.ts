import { shorten } from '../../kit/shorten.ts';

/** Characters of the API server's message in ours. */
const maxCause = 512;

/** The API server's sentence in one line: webhooks choose some. */
export const refusalCause = (message: string): string => shorten(message.replace(/[\p{C}\s]+/gu, ' ').trim(), maxCause);

/** From strict validation, in the API server's words; undefined for any other message. */
export function unknownFieldsIn(message: string): string | undefined {
  const [, errors] = /: strict decoding error: (.*)$/s.exec(message) ?? [];
  return errors === undefined ? undefined : refusalCause(errors);
}
