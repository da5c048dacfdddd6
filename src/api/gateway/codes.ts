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
  NotGranted: {
    audience: 'requester',
    meaning: 'The grant does not allow the call, or the gateway does not pass such calls.',
    remedy: 'Call what the message lists, or create a request through a template that allows the call.',
  },
  NotServed: {
    audience: 'requester',
    meaning:
      'The gateway does not serve the path, the method, or the parameter, or the session has no output to watch.',
    remedy: 'Use `kubectl drawbridge exec`, `drawbridge sessions`, or what the message lists.',
  },
  TooManySessions: {
    audience: 'requester',
    meaning: 'The grant or the replica has as many open or new sessions as allowed, or as many viewers.',
    remedy: 'Close some sessions or views, or try again later.',
  },
  WebSocketRequired: {
    audience: 'requester',
    meaning: 'The client called exec, attach, or port-forward without a WebSocket.',
    remedy:
      'Use kubectl 1.31 or newer. A newer kubectl calls so after its WebSocket was refused; `-v=4` shows the reason.',
  },
  UnknownProtocol: {
    audience: 'requester',
    meaning: 'The WebSocket has no subprotocol that the gateway and the API server pass.',
    remedy: 'Use kubectl 1.31 or newer.',
  },
  GatewayFailed: {
    audience: 'operator',
    meaning: 'The gateway could not reach the API server, create the AccessSession, or read a recording.',
    remedy: 'Try again. The log of the gateway has the reason.',
  },
  RecorderUnavailable: {
    audience: 'operator',
    meaning: 'The template requires recordings, and the gateway cannot store one.',
    remedy: 'Read the log of the gateway, and see [record sessions](../tasks/record-sessions.md).',
  },
  GatewayNotReady: {
    audience: 'operator',
    meaning: 'The gateway has not read the grants or their keys, or lost contact with the API server.',
    remedy: 'Try again. `/readyz` of the gateway names the cause.',
  },
  FrontProxyUntrusted: {
    audience: 'operator',
    meaning: 'The gateway cannot read the front-proxy settings of the API server, or they are not safe.',
    remedy: 'See [certificates](../tasks/open-sessions-through-the-gateway.md#certificates).',
  },
  RefusedByApiServer: {
    audience: 'requester',
    meaning: 'The API server refused the stream, for example because the pod has no such container.',
    remedy: 'Correct what the message of the API server names.',
  },
  NotApiServer: {
    audience: 'anyone',
    meaning:
      'The caller is neither the API server nor a replica of the gateway: it does not present their certificate.',
    remedy: 'Call the API server, for example with `kubectl`. It forwards the call to the gateway.',
  },
  NoUser: {
    audience: 'operator',
    meaning: 'The API server named no user or several, or a user that is too large.',
    remedy: 'Check the groups of the user, and the `--requestheader` flags of the API server.',
  },
  HeadTooLarge: {
    audience: 'requester',
    meaning: 'The path, the query, and the headers of the call have over 256 KiB.',
    remedy: 'Shorten the command: `kubectl exec -i POD -- sh < script.sh`.',
  },
  SessionNotOpen: {
    audience: 'operator',
    meaning: 'No replica of the gateway has this open session.',
    remedy: 'List the open sessions: `drawbridge sessions list -A`.',
  },
  NoRecording: {
    audience: 'operator',
    meaning: 'The gateway has no recording of a session with this name in the namespace.',
    remedy: 'Check the name and the namespace. The audit journal of the gateway shows what happened to the recording.',
  },
  ReplicaUnreachable: {
    audience: 'operator',
    meaning: 'The replica of the gateway that holds the session cannot be reached.',
    remedy: 'Let the replicas reach each other at port 9445. The log of the gateway has the reason.',
  },
} as const satisfies CodeTable;
