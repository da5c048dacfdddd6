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
  /** For people; cut at 1024 characters. */
  readonly note: string;
}

/** Tells people what happened, as events.k8s.io/v1 Events. Best effort: it never blocks, throws or fails what it reports on. */
export interface EventRecorder {
  record(event: RecordedEvent): void;
  /** Writes what is pending, for at most 2 s, and ends the recorder. */
  close(): Promise<void>;
}
