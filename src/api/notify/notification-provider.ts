import { Type } from 'typebox';
import { accessCategory } from '../access/names.ts';
import type { Resource } from '../object.ts';
import { conditions, listOf, oneOf, time } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';

export const notificationProviders = {
  group: 'access.drawbridge.dev',
  version: 'v1alpha1',
  plural: 'notificationproviders',
  kind: 'NotificationProvider',
  namespaced: true,
} as const satisfies Resource;

export const providerTypes = ['Webhook', 'Slack', 'Teams', 'Email'] as const;
export type ProviderType = (typeof providerTypes)[number];

/** Only Secrets of this type are read, so that no provider can send another Secret away. */
export const providerSecretType = 'access.drawbridge.dev/notification-provider';

/** On a provider. A new value lets the server send a test message; `status.lastTest.id` repeats it. */
export const testAnnotation = 'access.drawbridge.dev/notify-test';

const text = (description: string, maxLength: number, minLength?: number) =>
  Type.Optional(Type.String({ description, ...(minLength && { minLength }), maxLength }));

export const notificationProviderKind = defineKind({
  resource: notificationProviders,
  description:
    'A NotificationProvider is a place that drawbridge sends messages to: a webhook, a channel of Slack or Teams, or mail addresses. NotificationSubscriptions choose the messages.',
  spec: Type.Object(
    {
      type: oneOf(providerTypes, { description: 'Webhook, Slack, Teams, or Email.' }),
      address: text(
        'An https URL for Webhook, Slack, and Teams; smtp://HOST:PORT (with STARTTLS) or smtps://HOST:PORT for Email. If it is confidential, or credentials go to it, set the key address of the Secret instead. With a token, Slack needs none.',
        2048,
        1,
      ),
      secretRef: Type.Optional(
        Type.Object(
          {
            name: Type.String({
              description: 'In the namespace of the provider.',
              pattern: '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$',
              maxLength: 253,
            }),
          },
          {
            description: `A Secret of type ${providerSecretType}, with the keys address, token (Slack), username and password (Email), signingKey and previousSigningKey (Webhook). Credentials are sent only to the address of the same Secret.`,
          },
        ),
      ),
      channel: text(
        'The channel for a token of Slack, or the mail addresses of Email, with commas between them.',
        1024,
        1,
      ),
      sender: text('The mail address in From, for Email.', 320),
      caBundle: text('PEM of the authority of the address, if it is private.', 65_536),
      linkBase: Type.Optional(
        Type.String({
          description:
            'The URL of a console, without a slash at its end: https, or http://127.0.0.1:PORT for that of each reader. Each message links it with /requests/NAMESPACE/KIND/NAME appended. Default: no link.',
          pattern: '^(https://[^\\s"<>|\\\\?#@%]*[^\\s"<>|\\\\?#@%/]|http://127\\.0\\.0\\.1:[0-9]{1,5})$',
          maxLength: 1024,
        }),
      ),
      timeout: text('How long an answer may take, as a Go duration from 1s to 30s. Default: 10s.', 64),
      suspend: Type.Optional(
        Type.Boolean({ description: 'If true, drawbridge sends nothing. Messages wait for at most 24 hours.' }),
      ),
      namespaces: Type.Optional(
        listOf(Type.String({ minLength: 1, maxLength: 63 }), 256, {
          description: 'Other namespaces whose subscriptions may use the provider. An asterisk (*) allows all.',
        }),
      ),
    },
    { description: 'Where messages go, and how.' },
  ),
  status: Type.Object(
    {
      conditions: Type.Optional(conditions),
      lastTest: Type.Optional(
        Type.Object(
          {
            id: Type.String({ description: `The value of the annotation ${testAnnotation}.`, maxLength: 128 }),
            at: time('When the sink answered.'),
            delivered: Type.Boolean({ description: 'Whether the sink accepted the message.' }),
            answer: Type.String({ description: 'What the sink answered, or why nothing was sent.', maxLength: 1024 }),
          },
          { description: 'The last test message.' },
        ),
      ),
    },
    { description: 'The observed state of this provider.' },
  ),
  shortNames: ['anp'],
  categories: [accessCategory],
  printerColumns: [
    column('Type', '.spec.type', 'Webhook, Slack, Teams, or Email.'),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status', 'Whether the sink accepts messages.'),
    column('State', '.status.conditions[?(@.type=="Ready")].reason', 'Ready, or why messages wait.'),
    ageColumn,
    column('Why', '.status.conditions[?(@.type=="Ready")].message', 'The reason for the state.', { priority: 1 }),
  ],
});

export type NotificationProvider = ObjectOf<typeof notificationProviderKind>;
export type ProviderSpec = NotificationProvider['spec'];
export type ProviderStatus = NonNullable<NotificationProvider['status']>;
