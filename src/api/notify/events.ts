/** What a subscription can name. As CloudEvents: `dev.drawbridge.access.requested.v1`. */
export const accessEvents = [
  'requested',
  'approved',
  'denied',
  'granted',
  'emergency',
  'ending',
  'extended',
  'ended',
  'extension.requested',
  'review-owed',
  'review-overdue',
  'session.started',
  'session.ended',
] as const;

export type AccessEvent = (typeof accessEvents)[number];

/** The type of the CloudEvent. */
export const cloudEventType = (event: AccessEvent | 'digest' | 'test'): string => `dev.drawbridge.access.${event}.v1`;
