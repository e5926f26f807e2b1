// A model that cannot be had from the hub or its cache. The message says what was tried and what to do.

export class HubError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "HubError";
  }
}
