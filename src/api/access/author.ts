import { type Static, Type } from 'typebox';
import { listOf, time } from '../schema/fields.ts';

/** Who wrote a template as it is, as the API server authenticated them. */
export const author = Type.Object(
  {
    username: Type.String({ description: 'The user name.', minLength: 1, maxLength: 1024 }),
    uid: Type.String({ description: 'The user’s uid, where the authenticator has one.', default: '', maxLength: 1024 }),
    groups: listOf(Type.String({ maxLength: 1024 }), 1024, {
      description: 'The groups that the user was in at that time.',
      default: [],
    }),
    time: time('When the template was written.'),
    signature: Type.Optional(
      Type.String({
        description: 'Proves that the webhook wrote all of this, for this generation of the template.',
        maxLength: 128,
      }),
    ),
  },
  {
    description:
      'Who vouches for this template: it gives no more than they may do. Set by the admission webhook to who changes the spec, whatever was sent.',
  },
);

export type Author = Static<typeof author>;

/** What the webhook vouches for: who wrote which generation of which template. */
export interface AuthorStamp {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** Of the template; unknown, and empty, for the first generation: the API server makes it after the webhook. */
  readonly uid: string;
  readonly generation: number;
  readonly author: Omit<Author, 'signature'>;
}
