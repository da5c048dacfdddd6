import { type Static, Type } from 'typebox';
import { listOf, time } from '../schema/fields.ts';

/** Who asked, as the API server authenticated them when the request was created. */
export const requester = Type.Object(
  {
    username: Type.String({ description: 'The user name.', minLength: 1, maxLength: 1024 }),
    uid: Type.String({ description: 'The user’s uid, where the authenticator has one.', default: '', maxLength: 1024 }),
    groups: listOf(Type.String({ maxLength: 1024 }), 1024, {
      description: 'The groups that the user was in at that time.',
      default: [],
    }),
    time: time('When the request was created.'),
    nonce: Type.Optional(Type.String({ description: 'Makes the stamp good for one request.', maxLength: 64 })),
    signature: Type.Optional(
      Type.String({
        description: 'Proves that the webhook wrote all of this, for this request: without it nothing is granted.',
        maxLength: 128,
      }),
    ),
  },
  { description: 'Who asked. Set by the admission webhook, whatever was sent.' },
);

export type Requester = Static<typeof requester>;

/** What the webhook vouches for: who asked, when, and for what. */
export interface Stamp {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** The whole spec; the requester and `revoked` in it do not count. */
  readonly spec: object;
  readonly requester: Pick<Requester, 'username' | 'uid' | 'groups' | 'time'>;
}

export type StampSeal = Required<Pick<Requester, 'nonce' | 'signature'>>;
