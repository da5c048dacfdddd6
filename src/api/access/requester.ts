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
  },
  { description: 'Who asked. Set by the admission webhook, whatever was sent.' },
);

export type Requester = Static<typeof requester>;
