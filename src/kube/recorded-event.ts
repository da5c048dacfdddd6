/** The object that an Event is about. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

export interface RecordedEvent {
  readonly regarding: ObjectReference;
  readonly type: 'Normal' | 'Warning';
  /** UpperCamelCase, at most 128 characters. */
  readonly reason: string;
  /** What was done or tried, UpperCamelCase, at most 128 characters. */
  readonly action: string;
  /** For people; cut at 1024 bytes. */
  readonly note: string;
}
