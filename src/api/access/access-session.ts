import { Type } from 'typebox';
import type { Resource } from '../object.ts';
import { objectName, oneOf, time } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';
import { accessCategory } from './names.ts';

/** One object for each open session of the gateway, in the namespace of its Pod. */
export const accessSessions = {
  group: 'access.drawbridge.dev',
  version: 'v1alpha1',
  plural: 'accesssessions',
  kind: 'AccessSession',
  namespaced: true,
} as const satisfies Resource;

/** Of a session, its AccessSession, and its recording: a random UUID (version 4). */
export const sessionNamePattern = '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$';

/** So that the name of its Lease is valid. */
export const maxReplicaName = 200;
/** The limit of Kubernetes. */
export const maxContainerName = 63;

export const accessSessionKind = defineKind({
  resource: accessSessions,
  description:
    'An AccessSession is a session that is open through the gateway. The gateway creates it before the first byte passes, and deletes it after the session. Deleting it ends the session.',
  rules: [{ rule: `self.metadata.name.matches('${sessionNamePattern}')`, message: 'metadata.name must be a UUID' }],
  spec: Type.Object(
    {
      user: Type.String({
        description: 'The user, as the API server authenticated them.',
        minLength: 1,
        maxLength: 1024,
      }),
      grant: objectName('The grant that allows the session: the name of its Role.'),
      request: Type.Object(
        {
          kind: oneOf(['PodAccessRequest', 'ExecAccessRequest'], { description: 'The kind of the request.' }),
          name: objectName('In the namespace of this session.'),
        },
        { description: 'The request of the grant.' },
      ),
      pod: objectName('The Pod.'),
      container: Type.Optional(
        Type.String({
          description: 'The container, if the user named one.',
          minLength: 1,
          maxLength: maxContainerName,
        }),
      ),
      stream: oneOf(['exec', 'attach', 'portforward'], { description: 'The kind of stream.' }),
      tty: Type.Boolean({ description: 'Whether the user asked for a terminal.' }),
      commandHash: Type.Optional(
        Type.String({
          description: 'The SHA-256 of the command, as in the audit journal. The command may contain secrets.',
          pattern: '^[0-9a-f]{64}$',
          maxLength: 64,
        }),
      ),
      recording: oneOf(['Off', 'BestEffort', 'Required'], {
        description: 'BestEffort: the session continues if its recording fails. Required: the gateway then ends it.',
      }),
      replica: Type.String({
        description: 'The replica of the gateway that holds the session. It has the Lease drawbridge-gateway-REPLICA.',
        pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
        maxLength: maxReplicaName,
      }),
      startedAt: time('When the session was opened.'),
    },
    {
      description: 'The session.',
      'x-kubernetes-validations': [
        {
          rule: 'self == oldSelf',
          message: 'an AccessSession is immutable; to end the session, delete it',
          reason: 'FieldValueForbidden',
        },
      ],
    },
  ),
  status: Type.Object({}, { description: 'AccessSessions have no status.' }),
  shortNames: ['asess'],
  categories: [accessCategory],
  printerColumns: [
    column('User', '.spec.user', 'The user.'),
    column('Pod', '.spec.pod', 'The Pod.'),
    column('Stream', '.spec.stream', 'exec, attach, or portforward.'),
    column('Grant', '.spec.grant', 'The grant that allows the session.'),
    ageColumn,
    column('Container', '.spec.container', 'The container, if the user named one.', { priority: 1 }),
    column('Recording', '.spec.recording', 'Off, BestEffort, or Required.', { priority: 1 }),
    column('Replica', '.spec.replica', 'The replica of the gateway.', { priority: 1 }),
  ],
});

export type AccessSession = ObjectOf<typeof accessSessionKind>;
