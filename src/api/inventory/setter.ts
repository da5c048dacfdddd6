import { type Static, Type } from 'typebox';
import { listOf } from '../schema/fields.ts';

const text = (description: string) => Type.String({ description, maxLength: 1024 });

/** Who named the Secret of a supplied kubeconfig, as the API server authenticated them. */
export const setter = Type.Object(
  {
    username: Type.String({ description: 'The user name.', minLength: 1, maxLength: 1024 }),
    uid: Type.String({ description: 'The user’s uid, where the authenticator has one.', default: '', maxLength: 1024 }),
    groups: listOf(text('A group.'), 1024, { description: 'The groups of the user at that time.', default: [] }),
    extra: Type.Optional(
      Type.Record(Type.String(), listOf(text('A value.'), 64), {
        description: 'What else the authenticator said of the user.',
        maxProperties: 64,
      }),
    ),
  },
  {
    description:
      'Who set kubeconfigSecretRef. Set by the admission webhook, whatever was sent: only what this user may read is used.',
  },
);

export type Setter = Static<typeof setter>;
