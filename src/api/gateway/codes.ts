import type { CodeTable } from '../code-table.ts';

/** Why the gateway ends a session: on the terminal, in the client's error, in the audit line. */
export const sessionEndTexts = {
  Expired: 'the deadline of the grant has passed, or an edit of the template shortened access',
  Revoked:
    'the request was given back, revoked, or deleted, or access ended early for another cause; `status.ended.reason` of the request names it',
  Denied: 'another person denied the access with a vote',
  Deleted: 'the request no longer exists',
  GrantInvalid: 'the grant no longer has a valid signature',
  Idle: 'no data passed for the idle limit of the template; the grant stays open',
  Killed: 'a user deleted the AccessSession; the audit log of the API server says who; the grant stays open',
  RecordingLost: 'the session must be recorded, and the gateway could not store its recording; the grant stays open',
  Restarting: 'the replica of the gateway stops; the grant stays open',
  Unverifiable:
    'the replica has heard nothing from the API server for 90 s, so a revocation could be missing; the grant stays open',
  BadFrame: 'the client or the pod sent a frame that the protocol does not allow',
  ClientGone: 'the client did not answer for a minute',
} as const;

/** Refusals by the gateway. */
export const gatewayCodes = {
  NoLiveGrant: {
    audience: 'requester',
    meaning: 'No request has this grant, or its access has ended.',
    remedy: 'Create a new request, and wait until it is ready.',
  },
  NotYourGrant: {
    audience: 'requester',
    meaning: 'The grant was given to another user.',
    remedy: 'Create a request of your own.',
  },
  NotGranted: {
    audience: 'requester',
    meaning: 'The grant does not allow the call, or the gateway does not pass such calls.',
    remedy: 'Call what the message lists, or create a request through a template that allows the call.',
  },
  UnknownParameter: {
    audience: 'requester',
    meaning: 'The query of the call has a parameter that the gateway does not pass.',
    remedy: 'Remove the parameter that the message names.',
  },
  TooManySessions: {
    audience: 'requester',
    meaning:
      'The grant has 64 open sessions in the replica, or the replica has 1,000, or the grant began more sessions than allowed: 200 at once, then 10 a second.',
    remedy: 'Close some sessions, or try again later.',
  },
  WebSocketRequired: {
    audience: 'requester',
    meaning: 'The client called exec, attach, or port-forward without a WebSocket, for example with SPDY.',
    remedy:
      'Use kubectl 1.31 or newer. A newer kubectl calls so after its WebSocket was refused; `-v=4` shows the reason.',
  },
  UnknownProtocol: {
    audience: 'requester',
    meaning:
      'The WebSocket has no subprotocol that the gateway passes, or the API server chose one that the gateway did not offer.',
    remedy: 'Use kubectl 1.31 or newer. If the message names the API server, tell an administrator.',
  },
  SessionNotStored: {
    audience: 'operator',
    meaning: 'The gateway could not create the AccessSession, so it opens no session.',
    remedy:
      'Read the log of the gateway. Check that the CRD of AccessSession is installed, and that the API server accepts writes.',
  },
  RecorderUnavailable: {
    audience: 'operator',
    meaning: 'The template requires recordings, and the gateway cannot store one.',
    remedy: 'Read the log of the gateway, and see [record sessions](../tasks/record-sessions.md).',
  },
  GatewayNotReady: {
    audience: 'operator',
    meaning: 'The gateway has not read the grants or their keys, or lost contact with the API server for over 90 s.',
    remedy: 'Try again. `/readyz` of the gateway names the cause.',
  },
  FrontProxyUntrusted: {
    audience: 'operator',
    meaning:
      'The gateway cannot read the front-proxy settings of the API server, or a user could pose as the API server under them.',
    remedy: 'See [certificates](../tasks/open-sessions-through-the-gateway.md#certificates).',
  },
  ApiServerUnreachable: {
    audience: 'operator',
    meaning: 'The gateway could not reach the API server.',
    remedy: 'Try again. The log of the gateway has the reason.',
  },
  RefusedByApiServer: {
    audience: 'requester',
    meaning: 'The API server refused the stream, for example because the pod has no such container.',
    remedy: 'Correct what the message of the API server names.',
  },
  NotApiServer: {
    audience: 'anyone',
    meaning: 'The caller does not present the front-proxy certificate of the API server.',
    remedy: 'Call the API server, for example with `kubectl`. It forwards the call to the gateway.',
  },
  NoUser: {
    audience: 'operator',
    meaning:
      'The API server named no user or several, or the user has a name of more than 1,024 characters or more than 1,000 groups.',
    remedy: 'Check the groups of the user, and the `--requestheader` flags of the API server.',
  },
  UnknownPath: {
    audience: 'anyone',
    meaning: 'The gateway does not serve the path.',
    remedy: 'Use `kubectl drawbridge exec`, `drawbridge sessions`, or a path that the message lists.',
  },
  HeadTooLarge: {
    audience: 'requester',
    meaning:
      'The path, the query, and the headers of the call have over 256 KiB, for example because of a long command.',
    remedy: 'Shorten the command: `kubectl exec -i POD -- sh < script.sh`.',
  },
  OnlyGet: {
    audience: 'anyone',
    meaning: 'The method of a call for a session or a recording is not GET.',
    remedy: 'Use GET. To end a session, delete its AccessSession.',
  },
  NoStream: {
    audience: 'anyone',
    meaning: 'The call asks for an upgrade, and nothing at its path is a stream.',
    remedy: 'Call the path without the header `Upgrade`.',
  },
  NotPeer: {
    audience: 'anyone',
    meaning: 'The caller of a path for replicas does not present the serving certificate of the gateway.',
    remedy: 'Use `drawbridge sessions tail`.',
  },
  SessionNotOpen: {
    audience: 'operator',
    meaning: 'No replica of the gateway has this open session.',
    remedy: 'List the open sessions: `drawbridge sessions list -A`.',
  },
  NoRecording: {
    audience: 'operator',
    meaning: 'The gateway has no recording of a session with this name in the namespace.',
    remedy:
      'Check the name and the namespace. The audit journal of the gateway shows whether the session was recorded, and whether its recording was deleted.',
  },
  TooManyViewers: {
    audience: 'operator',
    meaning: 'A session has at most 8 viewers, and a replica 64.',
    remedy: 'End another view, or try again later.',
  },
  NoTerminal: {
    audience: 'operator',
    meaning: 'The session forwards ports, and has no output to watch.',
    remedy: 'To end the session: `drawbridge sessions kill SESSION -n NAMESPACE`.',
  },
  RecordingUnreadable: {
    audience: 'operator',
    meaning: 'The gateway cannot read the recording from its storage.',
    remedy: 'Try again. The log of the gateway has the reason.',
  },
  ReplicaUnreachable: {
    audience: 'operator',
    meaning: 'A replica of the gateway holds the session, and the replica that got the call cannot reach it.',
    remedy: 'Let the replicas reach each other at port 9445. The log of the gateway has the reason.',
  },
} as const satisfies CodeTable;
