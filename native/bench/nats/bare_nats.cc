// bare-nats server=HOST:PORT subject=… stream=… first=… subscribers=N size=BYTES seconds=S rate=R …: a
// publisher and forked subscribers on libnats that only count, with the settings of Hydra's clients. With an
// empty stream it is core NATS; otherwise every message is acknowledged at both ends.
#include <nats/nats.h>

#include <string>

#include "window.h"

namespace {

constexpr std::int64_t kAnswerMs = 5'000;

void check(natsStatus status, const char* what) {
    if (status != NATS_OK) {
        must(false, (std::string(what) + ": " + natsStatus_GetText(status)).c_str());
    }
}

natsConnection* connected(const bare::Arguments& arguments) {
    natsOptions* options = nullptr;
    check(natsOptions_Create(&options), "options");
    check(natsOptions_SetURL(options, ("nats://" + arguments.text("server")).c_str()), "url");
    natsConnection* connection = nullptr;
    check(natsConnection_Connect(&connection, options), "connect");
    return connection;
}

jsCtx* stream_of(natsConnection* connection, const bare::Arguments& arguments) {
    jsOptions options;
    jsOptions_Init(&options);
    options.Wait = kAnswerMs;
    options.PublishAsync.MaxPending = arguments.number("publish_window");
    jsCtx* stream = nullptr;
    check(natsConnection_JetStream(&stream, connection, &options), "JetStream");
    return stream;
}

void on_message(natsConnection*, natsSubscription*, natsMsg* message, void* tally) {
    static_cast<bare::Tally*>(tally)->take(natsMsg_GetData(message));
    natsMsg_Destroy(message);
}

void receive(bare::Measurement& measurement, const bare::Arguments& arguments) {
    bare::Tally tally(arguments.rate() > 0);
    natsConnection* connection = connected(arguments);
    natsSubscription* subscription = nullptr;
    const char* subject = arguments.text("subject").c_str();
    if (arguments.text("stream").empty()) {
        check(natsConnection_Subscribe(&subscription, connection, subject, on_message, &tally), "subscribe");
        check(natsConnection_FlushTimeout(connection, kAnswerMs), "flush");
    } else {
        jsSubOptions wanted;
        jsSubOptions_Init(&wanted);
        wanted.Stream = arguments.text("stream").c_str();
        wanted.Config.DeliverPolicy = js_DeliverByStartSequence;
        wanted.Config.OptStartSeq = static_cast<std::uint64_t>(arguments.number("first"));
        wanted.Config.AckPolicy = js_AckExplicit;
        wanted.Config.MaxAckPending = arguments.number("max_ack_pending");
        check(js_Subscribe(&subscription, stream_of(connection, arguments), subject, on_message, &tally,
                           nullptr, &wanted, nullptr),
              "subscribe");
    }
    check(natsSubscription_SetPendingLimits(subscription, arguments.number("pending_messages"),
                                            arguments.number("pending_bytes")),
          "limits");
    measurement.observe(tally);
    std::_Exit(0);  // while the library's thread still receives
}

void publish(bare::Measurement& measurement, const bare::Arguments& arguments) {
    natsConnection* connection = connected(arguments);
    const char* subject = arguments.text("subject").c_str();
    const auto size = static_cast<int>(arguments.size());
    if (arguments.text("stream").empty()) {
        measurement.publish(arguments.size(), [&](const char* message) {
            return natsConnection_Publish(connection, subject, message, size) == NATS_OK;
        });
        return;
    }
    jsCtx* stream = stream_of(connection, arguments);
    measurement.publish(arguments.size(), [&](const char* message) {
        return js_PublishAsync(stream, subject, message, size, nullptr) == NATS_OK;
    });
}

}  // namespace

int main(int argc, char** argv) {
    const bare::Arguments arguments(argc, argv);
    bare::Measurement measurement(arguments);
    measurement.fork_each(arguments.subscribers(), [&](int) { receive(measurement, arguments); });
    publish(measurement, arguments);
    std::fflush(stdout);
    std::_Exit(0);  // the library's cleanup is not measured
}
