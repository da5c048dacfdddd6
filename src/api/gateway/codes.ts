import type { CodeTable } from '../code-table.ts';

/** Why the gateway ends a session: on the terminal, in the client's error, in the audit line. */
export const sessionEndTexts = {
  Expired: 'the granted time has passed, or an edit of the template shortened it',
  Revoked:
    'the request was revoked or deleted, or access ended early for another cause, which `status.ended.reason` names',
  Denied: 'a vote denied the access',
  Deleted: 'the request no longer exists',
  Idle: 'no data passed for the idle limit of the template; the grant stays open',
  Killed: 'a user deleted the AccessSession; the audit log of the API server says who; the grant stays open',
  RecordingLost: 'the session must be recorded, and the gateway could not store its recording; the grant stays open',
  Restarting: 'the replica of the gateway stops; the grant stays open',
  Unverifiable:
    'the replica has heard nothing from the API server for 90 s, so a revocation could be missing; the grant stays open',
  BadFrame: 'the client or the pod sent a frame that the protocol does not allow; the grant stays open',
  ClientGone: 'the client did not answer for a minute; the grant stays open',
} as const;

/** Refusals by the gateway. */
export const gatewayCodes = {
  NotGranted: {
    audience: 'requester',
    meaning: 'The grant does not allow the call, or the gateway does not pass it.',
    remedy: 'Call what the message lists, or request access through a template that allows the call.',
  },
  NotServed: {
    audience: 'requester',
    meaning: 'The gateway does not serve the path, method, or parameter, or the session has no output to watch.',
    remedy: 'Use `kubectl drawbridge exec`, `drawbridge sessions`, or what the message lists.',
  },
  TooManySessions: {
    audience: 'requester',
    meaning: 'The grant or the replica has as many sessions, new sessions, or viewers as allowed.',
    remedy: 'Close some sessions or views, or try again later.',
  },
  WebSocketRequired: {
    audience: 'requester',
    meaning:
      'The client called exec, attach, or port-forward without a WebSocket, or with a subprotocol that the gateway does not pass.',
    remedy: 'Use kubectl 1.31 or newer. It also calls so after its WebSocket was refused; `-v=4` shows why.',
  },
  GatewayFailed: {
    audience: 'operator',
    meaning:
      'The gateway could not reach the API server, agree with it on a subprotocol, create the AccessSession, or read a recording.',
    remedy: 'Try again. The log of the gateway has the reason.',
  },
  RecorderUnavailable: {
    audience: 'operator',
    meaning: 'The template requires recordings, and the gateway cannot store one.',
    remedy: 'Read the log of the gateway, and see [record sessions](../tasks/record-sessions.md).',
  },
  GatewayNotReady: {
    audience: 'operator',
    meaning: 'The gateway has not read the grants, or has lost the API server.',
    remedy: 'Try again. `/readyz` of the gateway names the cause.',
  },
  FrontProxyUntrusted: {
    audience: 'operator',
    meaning: 'The gateway cannot read the front-proxy settings of the API server, or they are unsafe.',
    remedy: 'See [certificates](../tasks/open-sessions-through-the-gateway.md#certificates).',
  },
  RefusedByApiServer: {
    audience: 'requester',
    meaning: 'The API server refused the stream, for example because the pod has no such container.',
    remedy: 'Correct what its message names.',
  },
  NotApiServer: {
    audience: 'anyone',
    meaning: 'The caller presents no certificate of the API server or of a replica of the gateway.',
    remedy: 'Call the API server, such as with `kubectl`.',
  },
  NoUser: {
    audience: 'operator',
    meaning: 'The API server named no user, several, or one that is too large.',
    remedy: 'Check the groups of the user, and the `--requestheader` flags of the API server.',
  },
  HeadTooLarge: {
    audience: 'requester',
    meaning: 'The path, query, and headers of the call exceed 256 KiB.',
    remedy: 'Shorten the command: `kubectl exec -i POD -- sh < script.sh`.',
  },
  SessionNotOpen: {
    audience: 'operator',
    meaning: 'No replica of the gateway has this open session.',
    remedy: 'List the open sessions: `drawbridge sessions list -A`.',
  },
  NoRecording: {
    audience: 'operator',
    meaning: 'The namespace has no recording of a session with this name.',
    remedy: 'Check the names. The audit journal of the gateway shows what happened to it.',
  },
  ReplicaUnreachable: {
    audience: 'operator',
    meaning: 'The replica of the gateway that holds the session cannot be reached.',
    remedy: 'Let replicas reach each other at port 9445. The log of the gateway has the reason.',
  },
} as const satisfies CodeTable;
