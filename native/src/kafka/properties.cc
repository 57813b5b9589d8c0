#include "kafka/properties.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string_view>
#include <vector>

#include "common/transport.h"
#include "kafka/handles.h"

namespace hydra {
namespace {

// The Java client's names for which librdkafka has another name, and librdkafka's own alternative names.
const std::map<std::string, std::string, std::less<>> kJavaNames = {
    {"fetch.max.wait.ms", "fetch.wait.max.ms"},
    {"fetch.message.max.bytes", "max.partition.fetch.bytes"},
    {"max.request.size", "message.max.bytes"},
    {"send.buffer.bytes", "socket.send.buffer.bytes"},
    {"receive.buffer.bytes", "socket.receive.buffer.bytes"},
    {"buffer.memory", "queue.buffering.max.kbytes"},
    {"ssl.truststore.certificates", "ssl.ca.pem"},
    {"ssl.keystore.key", "ssl.key.pem"},
    {"ssl.keystore.certificate.chain", "ssl.certificate.pem"},
};

constexpr const char* kFiguresDepend = "Hydra sets this property, because Hydra's figures depend on it";
constexpr const char* kCommit =
    "Hydra sets this property, because Hydra's figures depend on it: a consumer group commits the messages "
    "that were "
    "counted";
constexpr const char* kThisProcess = "this property would load other code into Hydra's client process";

// Properties that a user may not set, each with the alternative.
const std::map<std::string, const char*, std::less<>> kControlled = {
    {"bootstrap.servers", "use --bootstrap"},
    {"metadata.broker.list", "use --bootstrap"},
    {"acks", "this property is a setting of the step: use --set settings.acks=…"},
    {"request.required.acks", "this property is a setting of the step: use --set settings.acks=…"},
    {"linger.ms", "this property is a setting of the step: use --set settings.linger_ms=…"},
    {"queue.buffering.max.ms", "this property is a setting of the step: use --set settings.linger_ms=…"},
    {"batch.size", "this property is a setting of the step: use --set settings.batch_bytes=…"},
    {"batch.num.messages", "this property is a setting of the step: use --set settings.msg_batch=…"},
    {"compression.type", "this property is a setting of the step: use --set settings.compression=…"},
    {"compression.codec", "this property is a setting of the step: use --set settings.compression=…"},
    {"enable.idempotence", "this property is a setting of the step: use --set settings.idempotence=…"},
    {"retries", "this property is a setting of the step: use --set settings.retries=…"},
    {"message.send.max.retries", "this property is a setting of the step: use --set settings.retries=…"},
    {"max.in.flight", "this property is a setting of the step: use --set settings.max_in_flight=…"},
    {"max.in.flight.requests.per.connection",
     "this property is a setting of the step: use --set settings.max_in_flight=…"},
    {"queue.buffering.max.kbytes",
     "this property is a setting of the step: use --set settings.buffer_memory=…"},
    {"delivery.timeout.ms",
     "this property is a setting of the step: use --set settings.delivery_timeout_ms=…"},
    {"message.timeout.ms",
     "this property is a setting of the step: use --set settings.delivery_timeout_ms=…"},
    {"client.id", kFiguresDepend},
    {"group.id", "this property is a setting of the step: use --set settings.group=…"},
    {"group.instance.id",
     "Hydra sets this property, because Hydra's figures depend on it: a member that died and was started "
     "again is a new member"},
    {"group.protocol",
     "Hydra sets this property, because Hydra's figures depend on it: all clients use the same protocol "
     "for a consumer group"},
    {"partition.assignment.strategy",
     "Hydra sets this property, because Hydra's figures depend on it: every client uses the assignment "
     "strategy range"},
    {"auto.offset.reset",
     "Hydra sets this property, because Hydra's figures depend on it: the step's configuration has the "
     "offset at which a subscriber starts"},
    {"enable.auto.commit", kCommit},
    {"auto.commit.enable", kCommit},
    {"enable.auto.offset.store", kCommit},
    {"enable.partition.eof", kFiguresDepend},
    {"enable.gapless.guarantee", kFiguresDepend},
    {"transactional.id", kFiguresDepend},
    {"delivery.report.only.error",
     "Hydra sets this property, because Hydra's figures depend on it: the number of messages sent (Tx) "
     "counts acknowledgements"},
    {"statistics.interval.ms", kFiguresDepend},
    {"log.queue", kFiguresDepend},
    {"plugin.library.paths", kThisProcess},
    {"interceptors", kThisProcess},
};

// The names of all properties of this librdkafka: the first column of its own table. (A dump omits properties
// without a value.)
std::vector<std::string> known_names() {
    char* text = nullptr;
    std::size_t size = 0;
    FILE* const table = open_memstream(&text, &size);
    if (table == nullptr) {
        return {};
    }
    rd_kafka_conf_properties_show(table);
    std::fclose(table);
    std::istringstream lines(std::string(text, size));
    std::free(text);
    std::vector<std::string> names;
    for (std::string line; std::getline(lines, line);) {
        if (line.find(" | ") != std::string::npos) {
            names.push_back(line.substr(0, line.find(' ')));
        }
    }
    return names;
}

// The number of characters to change, remove or insert.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t above = row[j + 1];
            row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row.back();
}

std::string nearest(const std::string& name) {
    std::string best;
    std::size_t least = name.size() / 3 + 1;
    for (const std::string& known : known_names()) {
        if (const std::size_t it = distance(name, known); it < least && !kControlled.contains(known)) {
            least = it;
            best = known;
        }
    }
    return best.empty() ? "" : "did you mean '" + best + "'? ";
}

bool known(const std::string& name) {
    const KafkaConf conf(rd_kafka_conf_new());
    char what[256];
    return rd_kafka_conf_set(conf.get(), name.c_str(), "", what, sizeof what) != RD_KAFKA_CONF_UNKNOWN;
}

std::string checked(const std::string& given) {
    const auto java = kJavaNames.find(given);
    const std::string& name = java == kJavaNames.end() ? given : java->second;
    if (const auto controlled = kControlled.find(name); controlled != kControlled.end()) {
        throw TransportError("the Kafka property '" + given + "' cannot be set: " + controlled->second);
    }
    if (!known(name)) {
        throw TransportError("there is no Kafka property '" + given + "': " + nearest(name) +
                             "names are the Java client's or those of librdkafka " + rd_kafka_version_str());
    }
    return name;
}

}  // namespace

Properties librdkafka_properties(const Properties& given) {
    Properties named;
    for (const auto& [name, value] : given) {
        named[checked(name)] = value;
    }
    return named;
}

}  // namespace hydra
