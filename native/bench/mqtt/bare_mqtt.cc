// bare-mqtt host=… port=… topic=… qos=0|1 subscribers=N size=BYTES seconds=S rate=R …: a publisher and forked
// subscribers on libmosquitto that only count, with the settings of Hydra's clients.
#include <mosquitto.h>
#include <mqtt_protocol.h>

#include <string>
#include <thread>

#include "window.h"

namespace {

constexpr int kWaitMs = 1000;
constexpr int kNoLimit = 65'535;

void check(int code, const char* what) {
    if (code != MOSQ_ERR_SUCCESS) {
        must(false, (std::string(what) + ": " + mosquitto_strerror(code)).c_str());
    }
}

// What the library's callbacks see of a client.
struct Client {
    explicit Client(const bare::Arguments& arguments) : tally(arguments.rate() > 0) {}
    bare::Tally tally;
    bool ready = false;
    int unanswered = 0;
};

mosquitto* connected(const bare::Arguments& arguments, const std::string& name, Client& client) {
    mosquitto_lib_init();
    mosquitto* mosq = mosquitto_new((arguments.text("topic") + name).c_str(), true, &client);
    must(mosq != nullptr, "mosquitto_new");
    mosquitto_int_option(mosq, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V311);
    mosquitto_int_option(mosq, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_int_option(mosq, MOSQ_OPT_SEND_MAXIMUM, arguments.number("max_inflight"));
    mosquitto_int_option(mosq, MOSQ_OPT_RECEIVE_MAXIMUM, kNoLimit);
    mosquitto_connect_callback_set(mosq, [](mosquitto*, void* it, int code) {
        check(code, "the connection is rejected");
        static_cast<Client*>(it)->ready = true;
    });
    mosquitto_message_callback_set(mosq, [](mosquitto*, void* it, const mosquitto_message* message) {
        static_cast<Client*>(it)->tally.take(message->payload);
    });
    mosquitto_publish_callback_set(mosq,
                                   [](mosquitto*, void* it, int) { --static_cast<Client*>(it)->unanswered; });
    mosquitto_subscribe_callback_set(
        mosq, [](mosquitto*, void* it, int, int, const int*) { static_cast<Client*>(it)->ready = true; });
    check(mosquitto_connect(mosq, arguments.text("host").c_str(), arguments.number("port"),
                            arguments.number("keepalive")),
          "connect");
    while (!client.ready) {
        check(mosquitto_loop(mosq, kWaitMs, 1), "connect");
    }
    return mosq;
}

void receive(bare::Measurement& measurement, const bare::Arguments& arguments, int number) {
    Client client(arguments);
    mosquitto* mosq = connected(arguments, "-s" + std::to_string(number), client);
    client.ready = false;
    check(mosquitto_subscribe(mosq, nullptr, arguments.text("topic").c_str(), arguments.number("qos")),
          "subscribe");
    while (!client.ready) {
        check(mosquitto_loop(mosq, kWaitMs, 1), "subscribe");
    }
    std::thread([mosq] { mosquitto_loop_forever(mosq, kWaitMs, 1); }).detach();
    measurement.observe(client.tally);
    std::_Exit(0);  // while the other thread still receives
}

void publish(bare::Measurement& measurement, const bare::Arguments& arguments) {
    Client client(arguments);
    mosquitto* mosq = connected(arguments, "-p", client);
    const char* topic = arguments.text("topic").c_str();
    const auto size = static_cast<int>(arguments.size());
    const int qos = arguments.number("qos");
    const int most = arguments.number("max_inflight");
    measurement.publish(arguments.size(), [&](const char* message) {
        while (mosquitto_want_write(mosq) || (qos > 0 && client.unanswered >= most)) {
            check(mosquitto_loop(mosq, kWaitMs, 1), "publish");
        }
        ++client.unanswered;
        return mosquitto_publish(mosq, nullptr, topic, size, message, qos, false) == MOSQ_ERR_SUCCESS;
    });
}

}  // namespace

int main(int argc, char** argv) {
    const bare::Arguments arguments(argc, argv);
    bare::Measurement measurement(arguments);
    measurement.fork_each(arguments.subscribers(),
                          [&](int number) { receive(measurement, arguments, number); });
    publish(measurement, arguments);
}
