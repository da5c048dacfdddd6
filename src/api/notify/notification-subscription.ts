import { Type } from 'typebox';
import { accessCategory } from '../access/names.ts';
import type { Resource } from '../object.ts';
import { conditions, listOf, objectName, oneOf, stringMap } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type Kind } from '../schema/kind.ts';
import { accessEvents } from './events.ts';
import { notificationProviderKind } from './notification-provider.ts';

export const notificationSubscriptions = {
  group: 'access.drawbridge.dev',
  version: 'v1alpha1',
  plural: 'notificationsubscriptions',
  kind: 'NotificationSubscription',
  namespaced: true,
} as const satisfies Resource;

export const notificationSubscriptionKind = defineKind({
  resource: notificationSubscriptions,
  description:
    'A NotificationSubscription chooses what a NotificationProvider tells about the requests of its own namespace.',
  spec: Type.Object(
    {
      providerRef: Type.Object(
        {
          name: objectName('The name of the NotificationProvider.'),
          namespace: Type.Optional(
            objectName('That of the provider, whose spec.namespaces must name this one. Default: this one.'),
          ),
        },
        { description: 'Who is told, and how.' },
      ),
      events: listOf(oneOf(accessEvents, { description: 'A kind of event.' }), accessEvents.length, {
        description: `What is told: ${accessEvents.join(', ')}.`,
        minItems: 1,
      }),
      templateSelector: Type.Optional(
        Type.Object(
          {
            matchLabels: Type.Optional(stringMap('Labels that a template must have.', 63)),
            matchExpressions: Type.Optional(
              listOf(
                Type.Object({
                  key: Type.String({ description: 'The key of the label.', minLength: 1, maxLength: 317 }),
                  operator: oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist'], { description: 'As in Kubernetes.' }),
                  values: Type.Optional(
                    listOf(Type.String({ maxLength: 63 }), 32, { description: 'For In and NotIn.' }),
                  ),
                }),
                16,
                { description: 'Further conditions on the labels.' },
              ),
            ),
          },
          { description: 'Only requests through templates with these labels. Default: all requests of the namespace.' },
        ),
      ),
      to: Type.Optional(
        oneOf(['Channel', 'Requester'], {
          description:
            'Channel: as the provider says. Requester: the mail address of who asked, only for Email. Default: Channel.',
        }),
      ),
    },
    { description: 'What is told, and to whom.' },
  ),
  status: Type.Object(
    { conditions: Type.Optional(conditions) },
    { description: 'The observed state of this subscription.' },
  ),
  shortNames: ['ans'],
  categories: [accessCategory],
  printerColumns: [
    column('Provider', '.spec.providerRef.name', 'The NotificationProvider.'),
    column('Events', '.spec.events', 'What is told.'),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status', 'Whether the provider can be used.'),
    column('State', '.status.conditions[?(@.type=="Ready")].reason', 'Ready, or why nothing is sent.'),
    ageColumn,
    column('Why', '.status.conditions[?(@.type=="Ready")].message', 'The reason for the state.', { priority: 1 }),
  ],
});

/** The CRDs of the chart are generated from them, one file for each. */
export const notifyKinds: readonly Kind[] = [notificationProviderKind, notificationSubscriptionKind];
